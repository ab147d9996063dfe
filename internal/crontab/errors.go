package crontab

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Error is one fault of a file.
type Error struct {
	File   string
	Line   int    // from 1
	Column int    // from 1, in bytes; one more than the line has where something is missing at its end
	Length int    // of what is wrong, in bytes; 0 where something is missing
	Text   string // the line
	Reason string
}

// Error returns the fault in one line: file:line:column: reason.
func (e *Error) Error() string {
	return fmt.Sprintf("%s:%d:%d: %s", e.File, e.Line, e.Column, e.Reason)
}

// excerptWidth is how many characters of a line an excerpt shows.
const excerptWidth = 160

// Excerpt returns two lines, without the newline of the last: the line with its number, and carets below what is wrong.
// Control characters are shown as escapes; of a long line only what stands around the fault is shown.
func (e *Error) Excerpt() string {
	var shown, carets strings.Builder
	from, to := e.Column-1, e.Column-1+max(1, e.Length)
	for at := 0; at < len(e.Text); {
		r, size := utf8.DecodeRuneInString(e.Text[at:])
		piece := e.Text[at : at+size]
		if r != '\t' && (!strconv.IsPrint(r) || r == utf8.RuneError && size == 1) {
			piece = strings.Trim(strconv.QuoteToASCII(piece), `"`)
		}
		shown.WriteString(piece)
		mark := " "
		if at < to && at+size > from {
			mark = "^"
		}
		if r == '\t' && (mark == " " || e.Length > 1) {
			mark = "\t" // as wide as the one above, whatever that is
		}
		if at < to {
			carets.WriteString(strings.Repeat(mark, utf8.RuneCountInString(piece)))
		}
		at += size
	}
	if from >= len(e.Text) {
		carets.WriteByte('^')
	}
	text, marks := around(shown.String(), strings.TrimRight(carets.String(), " \t"))
	return fmt.Sprintf("%3d | %s\n%s | %s", e.Line, text, strings.Repeat(" ", max(3, len(strconv.Itoa(e.Line)))), marks)
}

// around cuts a long text to what stands around the first caret of the marks below it.
func around(text, marks string) (string, string) {
	shown, below := []rune(text), []rune(marks)
	if len(shown) <= excerptWidth {
		return text, marks
	}
	start := min(max(0, slices.Index(below, '^')-excerptWidth/2), len(shown)-excerptWidth)
	end := start + excerptWidth
	cut := func(at int) {
		shown[at] = '…'
		if at < len(below) && below[at] == '\t' {
			below[at] = ' '
		}
	}
	if start > 0 {
		cut(start)
	}
	if end < len(shown) {
		cut(end - 1)
		below = below[:min(end, len(below))]
	}
	return string(shown[start:end]), string(below[start:])
}

// Errors is everything that is wrong with a file, by line and column.
type Errors struct {
	File string
	List []*Error // at least one
	Jobs int      // job lines of the file
	Fine int      // job lines without a fault
}

// Error returns all faults with their lines, and a summary; the last line has no newline.
func (e *Errors) Error() string {
	var b strings.Builder
	for _, one := range e.List {
		fmt.Fprintf(&b, "%s\n%s\n", one.Error(), one.Excerpt())
	}
	fmt.Fprintf(&b, "%s: %d error", e.File, len(e.List))
	if len(e.List) != 1 {
		b.WriteByte('s')
	}
	if e.Jobs > 0 {
		fmt.Fprintf(&b, "; %d of %d jobs are fine", e.Fine, e.Jobs)
	}
	return b.String()
}

// Unwrap returns the faults.
func (e *Errors) Unwrap() []error {
	list := make([]error, len(e.List))
	for i, one := range e.List {
		list[i] = one
	}
	return list
}
