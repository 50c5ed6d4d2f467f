//go:build unix

package cli

import (
	"os"
	"os/exec"
	"os/signal"
	"syscall"
)

// interrupts are the signals that end a command. Under nohup a lost terminal is none.
func interrupts() []os.Signal {
	all := []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGQUIT}
	if !signal.Ignored(syscall.SIGHUP) {
		all = append(all, syscall.SIGHUP)
	}
	return all
}

func ownGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// signal passes s on to the whole group.
func (c *command) signal(s os.Signal) {
	if s, ok := s.(syscall.Signal); ok {
		_ = syscall.Kill(-c.cmd.Process.Pid, s) // nobody may be left
	}
}

func (c *command) terminate() { c.signal(syscall.SIGTERM) }

// kill ends the whole group.
func (c *command) kill() { c.signal(syscall.SIGKILL) }
