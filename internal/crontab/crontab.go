package crontab

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-singleton/singleton/schedule"
)

// MaxSize is the largest file that Parse reads, in bytes.
const MaxSize = 1 << 20

// DefaultShell is the shell of jobs above which no SHELL is set.
const DefaultShell = "/bin/sh"

// Options changes how Parse reads a file.
type Options struct {
	Seconds  bool           // six fields, seconds first
	Zone     *time.Location // of schedules above which no CRON_TZ is set; nil is UTC
	Policies Policies       // of jobs that do not say otherwise
}

// File is what a crontab file says.
type File struct {
	Jobs    []Job    // in the order of the file
	Notices []string // what a person should know, one line each; nothing that is wrong
}

// Job is one job line, with what holds for it.
type Job struct {
	Name    string // unique in the file
	Spec    string // fields or descriptor as written, with one blank between its words
	Zone    *time.Location
	Expr    *schedule.Expr // Spec, read in Zone
	Command string
	Shell   string   // absolute path
	Env     []string // "NAME=value", each name once, sorted
	Line    int      // from 1
	Policies
}

// Same reports whether other says the same of a job, wherever in its file.
func (j Job) Same(other Job) bool {
	return j.Name == other.Name && j.Spec == other.Spec && j.Zone.String() == other.Zone.String() && j.Command == other.Command &&
		j.Shell == other.Shell && slices.Equal(j.Env, other.Env) && j.Policies == other.Policies
}

// Parse reads a file; name is for messages only. When anything is wrong with the file the error is an *Errors, and
// nothing of the file is returned; any other error is about opts. A file without jobs is no error.
func Parse(name string, data []byte, opts Options) (*File, error) {
	if err := opts.Policies.check(); err != nil {
		return nil, err
	}
	if opts.Zone == nil {
		opts.Zone = time.UTC
	}
	p := &parser{
		opts: opts, zone: opts.Zone, shell: DefaultShell,
		file:  &File{},
		bad:   &Errors{File: name},
		owner: map[string]*Job{},
	}
	p.parse(bytes.TrimPrefix(data, []byte("\ufeff")))
	if len(p.bad.List) > 0 {
		p.bad.Fine = len(p.file.Jobs)
		slices.SortStableFunc(p.bad.List, func(a, b *Error) int {
			if a.Line != b.Line {
				return a.Line - b.Line
			}
			return a.Column - b.Column
		})
		return nil, p.bad
	}
	return p.file, nil
}

// parser is the state between two lines of a file.
type parser struct {
	opts  Options
	zone  *time.Location
	shell string
	env   []string
	above *settings // the "#:" lines right above; nil is none
	owner map[string]*Job
	file  *File
	bad   *Errors
	mail  bool // the notice about mail has been given
}

func (p *parser) parse(data []byte) {
	if len(data) > MaxSize {
		p.fail(line{1, firstLine(data)}, 0, 0, "%d bytes; a crontab has at most %d", len(data), MaxSize)
		return
	}
	for n, text := range slices.Collect(strings.Lines(string(data))) {
		l := line{n + 1, strings.TrimRight(text, "\r\n")}
		if i := strings.IndexByte(l.text, 0); i >= 0 {
			p.fail(l, i, 1, "a NUL byte: this is no text in UTF-8")
			return
		}
		p.line(l)
	}
	p.unused()
}

func firstLine(data []byte) string {
	first, _, _ := bytes.Cut(data, []byte("\n"))
	return string(first[:min(len(first), 80)])
}

func (p *parser) line(l line) {
	words := l.words()
	switch {
	case len(words) == 0:
		p.unused()
	case strings.HasPrefix(words[0].text, "#:"):
		p.settings(l, words)
	case strings.HasPrefix(words[0].text, "#"):
		p.unused()
	default:
		if a, ok := l.assignment(); ok {
			p.unused()
			p.assign(l, a)
			return
		}
		p.bad.Jobs++
		p.job(l, words)
		p.above = nil
	}
}

// fail reports n bytes of a line, from byte at on; n = 0 points between two bytes, or behind the last.
func (p *parser) fail(l line, at, n int, format string, args ...any) {
	p.bad.List = append(p.bad.List, &Error{
		File: p.bad.File, Line: l.n, Column: at + 1, Length: n, Text: l.text, Reason: fmt.Sprintf(format, args...),
	})
}

// line is a line of the file without its end.
type line struct {
	n    int // from 1
	text string
}

// word is a piece of a line.
type word struct {
	at   int
	text string
}

func (w word) end() int { return w.at + len(w.text) }

const blanks = " \t"

// words returns the pieces between blanks.
func (l line) words() []word {
	var words []word
	for at := 0; ; {
		at += len(l.text[at:]) - len(strings.TrimLeft(l.text[at:], blanks))
		if at == len(l.text) {
			return words
		}
		end := strings.IndexAny(l.text[at:], blanks)
		if end < 0 {
			end = len(l.text) - at
		}
		words = append(words, word{at, l.text[at : at+end]})
		at += end
	}
}
