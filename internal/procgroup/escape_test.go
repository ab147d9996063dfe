package procgroup

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestEscape(t *testing.T) {
	for _, tt := range []struct{ in, want string }{
		{"", ""},
		{"plain text, ümlaut, 日本語, 🙂, a\\b 'q' \"q\"", "plain text, ümlaut, 日本語, 🙂, a\\b 'q' \"q\""},
		{"a\tb", "a\tb"},
		{"\x1b[31mred\x1b[0m", `\x1b[31mred\x1b[0m`},
		{"50%\r100%", `50%\r100%`},
		{"a\nb\x00c\x7f", `a\nb\x00c\x7f`},
		{"\u0085\u009b1m", `\u0085\u009b1m`},
		{"user\u202etxt.exe", `user\u202etxt.exe`},
		{"a\u2028b\ufeff", `a\u2028b\ufeff`},
		{"bad \xff\xc3 end \xe2\x82", `bad \xff\xc3 end \xe2\x82`},
		{"a real \ufffd", "a real \ufffd"},
	} {
		if got := Escape([]byte(tt.in)); got != tt.want {
			t.Errorf("Escape(%q) = %q, want %q", tt.in, got, tt.want)
		}
	}
}

func FuzzEscape(f *testing.F) {
	f.Add([]byte("\x1b]0;title\x07\u202e\xff"))
	f.Fuzz(func(t *testing.T, line []byte) {
		got := Escape(line)
		if !utf8.ValidString(got) {
			t.Fatalf("%q is not UTF-8", got)
		}
		if i := strings.IndexFunc(got, func(r rune) bool { return r != '\t' && hidden(r) }); i >= 0 {
			t.Fatalf("%q has a control character at %d", got, i)
		}
		if again := Escape([]byte(got)); again != got {
			t.Fatalf("%q becomes %q the second time", got, again)
		}
	})
}
