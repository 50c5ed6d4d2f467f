// Package guide holds the code that README.md and the pages of docs show, so that it
// compiles. A test holds that every piece of Go in them stands here or in another file
// of the repository.
package guide
