package procgroup

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Escape shows a line as text that is safe for a terminal and a log: control characters, characters that break lines
// or turn the writing direction, and bytes that are not UTF-8 become escapes such as \x1b and \u202e. Tabs are kept, and
// so is a backslash: this is for reading, not for taking back.
func Escape(line []byte) string {
	var b strings.Builder
	for len(line) > 0 {
		r, size := utf8.DecodeRune(line)
		switch {
		case r == utf8.RuneError && size == 1:
			b.WriteString(`\x`)
			b.WriteString(hex(line[0]))
		case r != '\t' && hidden(r):
			b.WriteString(strings.Trim(strconv.QuoteRuneToASCII(r), "'"))
		default:
			b.Write(line[:size])
		}
		line = line[size:]
	}
	return b.String()
}

// hidden reports whether r does something to a terminal rather than being shown by it.
func hidden(r rune) bool {
	return unicode.IsControl(r) || r == '\u2028' || r == '\u2029' || r == '\ufeff' || unicode.Is(unicode.Bidi_Control, r)
}

func hex(b byte) string {
	const digits = "0123456789abcdef"
	return string([]byte{digits[b>>4], digits[b&15]})
}
