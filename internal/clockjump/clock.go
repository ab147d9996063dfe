//go:build unix

// Package clockjump makes the wall clock of a server process jump, forward or back, while it runs, and nobody else's.
//
// A small library, written in C and compiled by gcc when it is first needed, is preloaded into the process. It answers
// clock_gettime, gettimeofday and time, and adds what a [Clock] says to the time of day; monotonic clocks are left alone,
// as a real step of the clock leaves them. It works for redis-server and for the Java of ZooKeeper on Linux; Go programs
// ask the kernel themselves and do not notice.
package clockjump

import (
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/go-singleton/singleton/internal/process"
)

//go:embed shim/clock.c
var source []byte

// size of the file that holds the offset, in nanoseconds.
const size = 8

// Clock is the wall clock of the processes that are started with Env. It starts out with the machine's time. Its methods
// are safe for concurrent use; Close comes after all others.
type Clock struct {
	library string
	file    string
	memory  []byte
}

// Start makes a clock that is closed at the end of the test. Without gcc the test fails and says how to install it.
func Start(t testing.TB) *Clock {
	t.Helper()
	return process.Started(t, func() (*Clock, error) { return New(t.TempDir()) })
}

// New makes a clock whose files lie in dir. Several clocks may share a directory, and with it the library, as long as they
// are not made at the same time.
func New(dir string) (*Clock, error) {
	if runtime.GOOS != "linux" {
		return nil, fmt.Errorf("clockjump: on %s no process can be given another clock: run this on Linux", runtime.GOOS)
	}
	library, err := compiled(dir)
	if err != nil {
		return nil, err
	}
	file, err := os.CreateTemp(dir, "offset-")
	if err != nil {
		return nil, fmt.Errorf("clockjump: %w", err)
	}
	defer file.Close()
	if err := file.Truncate(size); err != nil {
		return nil, fmt.Errorf("clockjump: %w", err)
	}
	memory, err := syscall.Mmap(int(file.Fd()), 0, size, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("clockjump: map %s: %w", file.Name(), err)
	}
	return &Clock{library: library, file: file.Name(), memory: memory}, nil
}

// compiled returns the library's path in dir, after compiling it where that has not been done.
func compiled(dir string) (string, error) {
	library := filepath.Join(dir, "clock.so")
	if _, err := os.Stat(library); !errors.Is(err, fs.ErrNotExist) {
		return library, err
	}
	gcc, err := exec.LookPath("gcc")
	if err != nil {
		return "", fmt.Errorf("clockjump: gcc is not on the PATH; install it: apt-get install -y --no-install-recommends "+
			"gcc libc6-dev (%w)", err)
	}
	text := filepath.Join(dir, "clock.c")
	if err := os.WriteFile(text, source, 0o600); err != nil {
		return "", fmt.Errorf("clockjump: %w", err)
	}
	if out, err := exec.Command(gcc, "-shared", "-fPIC", "-O1", "-Wall", "-Werror", "-o", library, text).CombinedOutput(); err != nil {
		return "", fmt.Errorf("clockjump: gcc: %w\n%s", err, out)
	}
	return library, nil
}

// Env returns what the environment of a process must say for this to be its clock.
func (c *Clock) Env() []string {
	return []string{"LD_PRELOAD=" + c.library, "CLOCKJUMP_FILE=" + c.file}
}

// Jump moves the clock by d, or back where d is negative, at once.
func (c *Clock) Jump(d time.Duration) { c.offset().Add(int64(d)) }

// Reset gives the clock the machine's time again.
func (c *Clock) Reset() { c.offset().Store(0) }

// Offset returns how far the clock is ahead of the machine's.
func (c *Clock) Offset() time.Duration { return time.Duration(c.offset().Load()) }

func (c *Clock) offset() *atomic.Int64 { return (*atomic.Int64)(unsafe.Pointer(&c.memory[0])) }

// Close gives up the clock. A process that still has it keeps its offset.
func (c *Clock) Close() error {
	if err := syscall.Munmap(c.memory); err != nil {
		return fmt.Errorf("clockjump: %w", err)
	}
	return nil
}
