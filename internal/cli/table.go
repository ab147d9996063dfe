package cli

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"
)

// table is rows of cells, printed in columns that are as wide as their widest cell.
type table struct {
	rows   [][]string
	spills bool // the last cell of a row may be longer than its column is wide
}

// add adds a row; its cells may come from anywhere and are made safe for a terminal.
func (t *table) add(cells ...string) {
	for i, c := range cells {
		cells[i] = line(c)
	}
	t.rows = append(t.rows, cells)
}

// gap is what stands between two columns.
const gap = 2

// ends returns the index of the last cell of a row that is not empty.
func ends(row []string) int {
	last := len(row) - 1
	for last > 0 && row[last] == "" {
		last--
	}
	return last
}

// widths returns how wide each column is.
func (t *table) widths() (all []int) {
	for _, row := range t.rows {
		for i, c := range row {
			if i == len(all) {
				all = append(all, 0)
			}
			if !t.spills || i < ends(row) {
				all[i] = max(all[i], utf8.RuneCountInString(c))
			}
		}
	}
	return all
}

// room returns how many characters of so many are left for the last cell of a row.
func room(row []string, widths []int, most int) int {
	for _, w := range widths[:ends(row)] {
		most -= w + gap
	}
	return most
}

// limit is how far a column may be cut down.
type limit struct{ column, least int }

// lastLeast is how far the last cell of a row may be cut down.
const lastLeast = 8

// fit cuts columns down, one after another, and then last cells, until no line has more characters; false when some still
// have.
func (t *table) fit(most int, limits ...limit) bool {
	t.spills = true
	for _, l := range limits {
		widths, excess := t.widths(), 0
		for _, row := range t.rows {
			excess = max(excess, utf8.RuneCountInString(row[ends(row)])-room(row, widths, most))
		}
		to := max(widths[l.column]-excess, l.least)
		for _, row := range t.rows {
			if l.column < ends(row) {
				row[l.column] = shorten(row[l.column], to)
			}
		}
	}
	widths, fits := t.widths(), true
	for _, row := range t.rows {
		least := max(room(row, widths, most), lastLeast)
		last := &row[ends(row)]
		*last = shorten(*last, least)
		fits = fits && utf8.RuneCountInString(*last) <= room(row, widths, most)
	}
	return fits
}

// drop leaves a column out.
func (t *table) drop(column int) {
	for i := range t.rows {
		t.rows[i] = slices.Delete(t.rows[i], column, column+1)
	}
}

// print writes the table; each row ends with its last character.
func (t *table) print(w io.Writer) error {
	widths := t.widths()
	var b strings.Builder
	for _, row := range t.rows {
		last := ends(row)
		for i, c := range row[:last] {
			b.WriteString(c)
			b.WriteString(strings.Repeat(" ", widths[i]-utf8.RuneCountInString(c)+gap))
		}
		b.WriteString(row[last])
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

// many says a number of things: "1 job", "12 jobs".
func many(n int, one, more string) string {
	if n == 1 {
		more = one
	}
	return fmt.Sprintf("%d %s", n, more)
}
