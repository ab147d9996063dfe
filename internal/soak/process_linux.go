package soak

import "syscall"

// attributes makes the kernel kill a replica when the test dies, however it dies.
func attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
