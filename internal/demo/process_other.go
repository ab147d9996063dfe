//go:build !linux

package demo

import "syscall"

// attributes keeps Ctrl-C, which the terminal sends to the whole foreground group, from the replicas: the demo ends them.
func attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
