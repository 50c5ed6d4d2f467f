// Package cli is the command genaitrace: its subcommands, their flags and its exit
// codes. [Main] is all of it as a function, which tests call with buffers.
package cli
