package schedule

import (
	"errors"
	"fmt"
)

// Errors that callers branch on; a SyntaxError wraps them.
var (
	// ErrNever says that an expression is well formed and has no instant at which it fires.
	ErrNever = errors.New("schedule: never fires")
	// ErrSixFields says that a spec has six fields and Options.Seconds is not set.
	ErrSixFields = errors.New("schedule: six fields")
)

// SyntaxError says which part of a spec is wrong, where, and why. Parse returns no other error.
type SyntaxError struct {
	Spec   string // as it was given
	Field  string // "minute", "day of month", …, "time zone", "interval" (of @every); empty when the whole is wrong
	Offset int    // of the wrong part in Spec, in bytes; len(Spec) where something is missing at the end
	Length int    // of the wrong part, in bytes; at least 1, so that there is something to underline
	Reason string // without the field

	cause error // ErrNever, ErrSixFields or nil
}

// Error returns the field, where there is one, and the reason.
func (e *SyntaxError) Error() string {
	if e.Field == "" {
		return "schedule: " + e.Reason
	}
	return fmt.Sprintf("schedule: %s: %s", e.Field, e.Reason)
}

// Unwrap returns ErrNever, ErrSixFields, or nil where the spec is plainly malformed.
func (e *SyntaxError) Unwrap() error { return e.cause }

// part is a piece of a spec that knows where it stands.
type part struct {
	text string
	at   int
}

// from returns the piece from byte i on.
func (p part) from(i int) part { return part{p.text[i:], p.at + i} }

// to returns the piece up to byte i.
func (p part) to(i int) part { return part{p.text[:i], p.at} }

// wrong reports that p is wrong as part of field.
func (p part) wrong(field, format string, args ...any) *SyntaxError {
	return &SyntaxError{
		Field:  field,
		Offset: p.at,
		Length: max(1, len(p.text)),
		Reason: fmt.Sprintf(format, args...),
	}
}
