package singleton_test

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestLinksLeadSomewhere follows each relative link of each Markdown file, to the heading.
func TestLinksLeadSomewhere(t *testing.T) {
	links, problems := checkLinks(t, os.DirFS("."))
	for _, p := range problems {
		t.Error(p)
	}
	if links < 10 {
		t.Errorf("found %d links in all: the check does not see them", links)
	}
}

// TestLinkCheckFindsDeadLinks shows on a fixture that the check above can fail.
func TestLinkCheckFindsDeadLinks(t *testing.T) {
	links, problems := checkLinks(t, os.DirFS("testdata/links"))
	if links != 8 {
		t.Errorf("found %d links, want 8", links)
	}
	equal(t, "problems", problems, []string{
		"index.md: gone.md: no such file",
		"index.md: sub/page.md#missing: no such heading",
		"index.md: #nowhere: no such heading",
		"sub/page.md: ../../outside.md: leads out of the repository",
	})
}

var (
	fence   = regexp.MustCompile("(?ms)^```.*?^```")
	link    = regexp.MustCompile(`(?m)\]\(([^()\s]+)\)|^\[[^\]]+\]:\s*(\S+)`)
	heading = regexp.MustCompile(`(?m)^#+ +(.+?)\s*$`)
)

// checkLinks returns how many relative links the Markdown files of root have, and what is wrong with them.
func checkLinks(t *testing.T, root fs.FS) (links int, problems []string) {
	eachFile(t, root, func(name string, text []byte) {
		if path.Ext(name) != ".md" {
			return
		}
		for _, m := range link.FindAllStringSubmatch(fence.ReplaceAllString(string(text), ""), -1) {
			target := m[1] + m[2]
			if strings.Contains(target, "://") || strings.HasPrefix(target, "mailto:") {
				continue
			}
			links++
			if wrong := follow(root, name, target); wrong != "" {
				problems = append(problems, fmt.Sprintf("%s: %s: %s", name, target, wrong))
			}
		}
	})
	return links, problems
}

// follow says what is wrong with a link from a file, or nothing.
func follow(root fs.FS, from, target string) string {
	file, anchor, _ := strings.Cut(target, "#")
	to := from
	if file != "" {
		to = path.Join(path.Dir(from), file)
	}
	if !fs.ValidPath(to) {
		return "leads out of the repository"
	}
	info, err := fs.Stat(root, to)
	if err != nil {
		return "no such file"
	}
	if anchor == "" || info.IsDir() {
		return ""
	}
	text, err := fs.ReadFile(root, to)
	if err != nil {
		return err.Error()
	}
	if path.Ext(to) == ".md" && !slices.Contains(anchors(string(text)), anchor) {
		return "no such heading"
	}
	return ""
}

// anchors returns what a heading's link is called on the usual hosts: lower case, hyphens for blanks, no punctuation.
func anchors(text string) (names []string) {
	for _, m := range heading.FindAllStringSubmatch(fence.ReplaceAllString(text, ""), -1) {
		names = append(names, strings.Map(func(r rune) rune {
			switch {
			case r == ' ':
				return '-'
			case r == '-' || r == '_' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z':
				return r
			}
			return -1
		}, strings.ToLower(m[1])))
	}
	return names
}
