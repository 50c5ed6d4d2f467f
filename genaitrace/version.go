package genaitrace

// Version is the version of this library, sent as the version of the
// instrumentation scope.
const Version = "0.1.0-dev"
