package singleton_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// What a path of somebody's own machine looks like; a URL's path does not match.
var ownPath = regexp.MustCompile(`(^|[^\w.~-])(/(home|Users|root|work)/\w+|/tmp/\w+[./]\w+|[A-Z]:\\Users\\)`)

// TestNoPathOfAMachine finds what was pasted from somebody's terminal.
func TestNoPathOfAMachine(t *testing.T) {
	here, err := filepath.Abs(".")
	if err != nil {
		t.Fatal(err)
	}
	files := 0
	eachFile(t, os.DirFS("."), func(name string, text []byte) {
		files++
		for i, line := range strings.Split(string(text), "\n") {
			if m := ownPath.FindStringSubmatch(line); m != nil {
				t.Errorf("%s:%d: %s is a path of one machine", name, i+1, m[2])
			}
			if strings.Contains(line, here+"/") {
				t.Errorf("%s:%d: it names the directory of this checkout", name, i+1)
			}
		}
	})
	if files < 20 {
		t.Errorf("read %d files: the check does not see them", files)
	}
}

// TestOwnPathForms shows what the check above finds and what it leaves alone.
func TestOwnPathForms(t *testing.T) {
	slash := "/"
	for line, want := range map[string]bool{
		"see " + slash + "home/ann/singleton/a.go":    true,
		`open("` + slash + `work/main")`:              true,
		slash + "root/go/pkg":                         true,
		`"` + slash + `tmp/x/y"`:                      true,
		`C:` + `\Users\ann`:                           true,
		"https://example.org" + slash + "home/ann/x":  false,
		"/usr/local/bin/report":                       false,
		"writes " + slash + "tmp/ticks once a second": false,
		"internal" + slash + "work/list":              false,
	} {
		if got := ownPath.MatchString(line); got != want {
			t.Errorf("%q: got %v, want %v", line, got, want)
		}
	}
}
