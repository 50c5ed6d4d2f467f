//go:build !unix

package cli

import (
	"os"
	"os/exec"
)

// interrupts are the signals that end a command.
func interrupts() []os.Signal { return []os.Signal{os.Interrupt} }

// Without process groups and signals there is only the command itself, which can
// only be killed.

func ownGroup(*exec.Cmd) {}

func (c *command) signal(os.Signal) { c.kill() }

func (c *command) terminate() {}

func (c *command) kill() { _ = c.cmd.Process.Kill() } // it may have exited
