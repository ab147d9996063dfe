//go:build unix

package procgroup

import (
	"bufio"
	"bytes"
	"errors"
	"os"
	"sync"
	"time"
)

const (
	// MaxLine is the longest piece of a line that Spec.Output gets, in bytes.
	MaxLine = 64 << 10

	maxTail = 4 << 10
	maxPipe = 1 << 20 // what a pipe can hold, at most, unless root has enlarged it
)

// stream is one output of a command.
type stream struct {
	name   string
	pipe   *os.File
	late   bool // the pipe's deadline has passed
	left   int  // bytes that may still be read then
	output func(string, []byte)
	tail   *tail
}

// open adds a stream to c and returns its writing end, for the command.
func (c *child) open(name string, output func(string, []byte)) (*os.File, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	c.streams = append(c.streams, &stream{name: name, pipe: r, left: maxPipe, output: output, tail: &c.tail})
	return w, nil
}

func (s *stream) close() { _ = s.pipe.Close() }

// hurry ends the reading: at the end of the output as ever, or else when somebody outside the group has held it open
// for too long.
func (s *stream) hurry() { _ = s.pipe.SetReadDeadline(time.Now().Add(linger)) }

// Read reads from the pipe. What lies in the pipe when the deadline passes is still read: it is the group's.
func (s *stream) Read(p []byte) (int, error) {
	if !s.late {
		n, err := s.pipe.Read(p)
		if s.late = errors.Is(err, os.ErrDeadlineExceeded); !s.late {
			return n, err
		}
	}
	if s.left == 0 {
		return 0, os.ErrDeadlineExceeded
	}
	if err := s.pipe.SetReadDeadline(time.Now().Add(10 * time.Millisecond)); err != nil {
		return 0, err
	}
	n, err := s.pipe.Read(p[:min(len(p), s.left)])
	s.left -= n
	return n, err
}

// copy hands on line after line until the output ends.
func (s *stream) copy() {
	defer s.close()
	lines := bufio.NewReaderSize(s, MaxLine)
	for rest := false; ; { // rest: what comes next is not the beginning of a line
		line, err := lines.ReadSlice('\n')
		text := bytes.TrimSuffix(line, []byte("\n"))
		if len(text) > 0 || len(line) > 0 && !rest {
			s.tail.add(line)
			if s.output != nil {
				s.output(s.name, text)
			}
		}
		if rest = errors.Is(err, bufio.ErrBufferFull); err != nil && !rest {
			return
		}
	}
}

// tail keeps the end of what is added.
type tail struct {
	mu  sync.Mutex
	buf []byte
}

func (t *tail) add(p []byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	p = p[max(0, len(p)-maxTail):]
	keep := min(len(t.buf), maxTail-len(p))
	t.buf = append(t.buf[:copy(t.buf, t.buf[len(t.buf)-keep:])], p...)
}

func (t *tail) bytes() []byte {
	t.mu.Lock()
	defer t.mu.Unlock()
	return bytes.Clone(t.buf)
}
