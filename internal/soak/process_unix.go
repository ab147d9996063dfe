//go:build unix && !linux

package soak

import "syscall"

func attributes() *syscall.SysProcAttr { return nil }
