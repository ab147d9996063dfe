package singleton_test

import (
	"io/fs"
	"path"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// eachFile calls visit with every text file below root that the repository may hold: no hidden directory (but .ci), no
// test fixture, nothing that .gitignore names. It does not ask git, so that it works in a module cache, too.
func eachFile(t *testing.T, root fs.FS, visit func(name string, text []byte)) {
	t.Helper()
	err := fs.WalkDir(root, ".", func(name string, entry fs.DirEntry, err error) error {
		base := path.Base(name)
		switch {
		case err != nil:
			return err
		case name == ".":
			return nil
		case entry.IsDir() && (slices.Contains([]string{"bin", "testdata"}, base) || base[0] == '.' && base != ".ci"):
			return fs.SkipDir
		case !entry.Type().IsRegular() || slices.Contains([]string{".test", ".out", ".prof", ".sum"}, path.Ext(base)):
			return nil
		}
		text, err := fs.ReadFile(root, name)
		if err != nil {
			return err
		}
		if utf8.Valid(text) {
			visit(name, text)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// equal reports the difference of two lists in words.
func equal(t *testing.T, what string, got, want []string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s:\n got %s\nwant %s", what, strings.Join(got, "\n     "), strings.Join(want, "\n     "))
	}
}
