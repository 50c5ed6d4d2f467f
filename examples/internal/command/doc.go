// Package command is what the programs of the examples share of a command line: flags
// whose mistakes are told clearly, and how a program begins and ends.
package command
