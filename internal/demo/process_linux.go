package demo

import "syscall"

// attributes lets the kernel end a replica whose demo was killed, and keeps Ctrl-C, which the terminal sends to the whole
// foreground group, from the replicas: the demo ends them.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
