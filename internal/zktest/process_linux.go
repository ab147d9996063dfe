package zktest

import "syscall"

// attributes makes the kernel kill the server when the process that has started it dies, however it dies.
func attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
