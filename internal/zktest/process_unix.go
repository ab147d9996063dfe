//go:build unix && !linux

package zktest

import "syscall"

func attributes() *syscall.SysProcAttr { return nil }
