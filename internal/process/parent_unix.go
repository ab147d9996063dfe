//go:build unix && !linux

package process

import "syscall"

func attributes() *syscall.SysProcAttr { return nil }
