package mutants

import (
	"encoding/json"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// mutant is one fault, and the test that must find it.
type mutant struct {
	name   string
	rule   string // that it leaves out, in one sentence
	file   string // from the root of the repository
	old    string // occurs once in file
	new    string
	killer killer
	quick  bool // its test takes no more than a few seconds
}

// killer is a test that fails on a mutant.
type killer struct {
	pkg  string   // ./scheduler
	run  string   // names of tests, divided by "|", each with the path of a subtest where only that is meant
	args []string // further flags of the test
}

// all returns every mutant.
func all() []mutant {
	return slices.Concat(leaseMutants, sessionMutants, memoryStoreMutants, redisStoreMutants, zookeeperStoreMutants, etcdStoreMutants,
		redlockStoreMutants, ledgerMutants, endMutants, tickMutants, policyMutants, lossMutants,
		requestMutants, scheduleMutants, childMutants, onceMutants)
}

// root is the repository, seen from the directory in which the tests run.
const root = "../.."

// apply returns the mutated text of the file.
func (m mutant) apply() (string, error) {
	text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(m.file)))
	if err != nil {
		return "", fmt.Errorf("the mutant %s no longer applies: %w", m.name, err)
	}
	switch n := strings.Count(string(text), m.old); {
	case m.old == m.new:
		return "", fmt.Errorf("the mutant %s changes nothing", m.name)
	case n == 0:
		return "", fmt.Errorf("the mutant %s no longer applies: %s has changed", m.name, m.file)
	case n > 1:
		return "", fmt.Errorf("the mutant %s no longer applies: its text occurs %d times in %s", m.name, n, m.file)
	}
	return strings.Replace(string(text), m.old, m.new, 1), nil
}

// pkg is the package of the mutated file.
func (m mutant) pkg() string {
	dir := path.Dir(m.file)
	if path.Ext(m.file) != ".go" { // a script that the package above embeds
		dir = path.Dir(dir)
	}
	return "./" + dir
}

// nested are the modules within the repository that have mutants.
var nested = []string{"store/etcdstore"}

// within returns the directory of the module that a package is in, and the package seen from there.
func within(pkg string) (module, from string) {
	for _, m := range nested {
		if rest, found := strings.CutPrefix(pkg+"/", "./"+m+"/"); found {
			return m, "./" + strings.TrimSuffix(rest, "/")
		}
	}
	return ".", pkg
}

// overlay writes what go's flag -overlay takes: the mutated files, at most one mutant for each.
func overlay(dir string, list ...mutant) (name string, err error) {
	replace := make(map[string]string)
	for _, m := range list {
		text, err := m.apply()
		if err != nil {
			return "", err
		}
		original, err := filepath.Abs(filepath.Join(root, filepath.FromSlash(m.file)))
		if err != nil {
			return "", err
		}
		mutated := filepath.Join(dir, m.name+filepath.Ext(m.file)) // go names it where it does not build
		if err := os.WriteFile(mutated, []byte(text), 0o600); err != nil {
			return "", err
		}
		replace[original] = mutated
	}
	spec, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	name = filepath.Join(dir, "overlay.json")
	return name, os.WriteFile(name, spec, 0o600)
}

// TestListIsSound checks what can be checked without running anything.
func TestListIsSound(t *testing.T) {
	seen := make(map[string]bool)
	for _, m := range all() {
		if seen[m.name] {
			t.Errorf("two mutants are called %s", m.name)
		}
		seen[m.name] = true
		if strings.ContainsAny(m.name, " |") || m.rule == "" || strings.HasSuffix(m.rule, ".") {
			t.Errorf("%s: a name has no spaces, and a rule is one sentence without a full stop: %q", m.name, m.rule)
		}
		if _, err := m.apply(); err != nil {
			t.Error(err)
		}
		for name := range strings.SplitSeq(m.killer.run, "|") {
			test, _, _ := strings.Cut(name, "/")
			if !hasTest(t, m.killer.pkg, test) {
				t.Errorf("the mutant %s names a test that %s lacks: %s", m.name, m.killer.pkg, test)
			}
		}
	}
	if len(seen) < 40 {
		t.Errorf("the list holds %d mutants", len(seen))
	}
}

// hasTest reports whether a package has a test function of that name.
func hasTest(t *testing.T, pkg, name string) bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, filepath.FromSlash(pkg), "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	return slices.ContainsFunc(files, func(file string) bool {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		return strings.Contains(string(text), "func "+name+"(t *testing.T)")
	})
}
