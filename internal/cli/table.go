package cli

import (
	"io"
	"strings"
	"unicode/utf8"
)

// table is rows of cells, printed in columns that are as wide as their widest cell.
type table struct{ rows [][]string }

// add adds a row; its cells may come from anywhere and are made safe for a terminal.
func (t *table) add(cells ...string) {
	for i, c := range cells {
		cells[i] = line(c)
	}
	t.rows = append(t.rows, cells)
}

// print writes the table; each row ends with its last character.
func (t *table) print(w io.Writer) error {
	var widths []int
	for _, row := range t.rows {
		for i, c := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], utf8.RuneCountInString(c))
		}
	}
	var b strings.Builder
	for _, row := range t.rows {
		var text strings.Builder
		for i, c := range row {
			text.WriteString(c)
			text.WriteString(strings.Repeat(" ", widths[i]-utf8.RuneCountInString(c)+2))
		}
		b.WriteString(strings.TrimRight(text.String(), " "))
		b.WriteByte('\n')
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// shorten cuts a text for a cell to n characters.
func shorten(s string, n int) string {
	s, _, _ = strings.Cut(s, "\n")
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	return string([]rune(s)[:n-1]) + "…"
}
