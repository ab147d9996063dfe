package process

import "syscall"

// attributes makes the kernel kill the process when the one that has started it dies, however it dies.
func attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
