package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/go-singleton/singleton/internal/procgroup"
)

// printJSON prints v as one line.
func (a *app) printJSON(v any) error {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return fmt.Errorf("cannot be written as JSON: %w", err)
	}
	_, err := a.stdout.Write(escapeJSON(buf.Bytes()))
	return err
}

// escapeJSON escapes what a terminal would act on and encoding/json leaves as it is, such as U+009B, which begins a
// control sequence. Outside of strings JSON has nothing of that kind.
func escapeJSON(text []byte) []byte {
	var out []byte
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRune(text[i:])
		if char := text[i : i+size]; r == '\n' || procgroup.Escape(char) == string(char) {
			out = append(out, char...)
		} else {
			out = fmt.Appendf(out, `\u%04x`, r)
		}
		i += size
	}
	return out
}

// seconds is a duration as programs read it, to the microsecond.
func seconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1e6 }
