package singleton_test

import (
	"fmt"
	"go/ast"
	"go/doc/comment"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// What election and scheduler promise; the texts stand in their doc.go. Without this list, a doc.go that has lost its
// promises would pass.
var promised = strings.Fields("E1 E2 E3 E4 E5 E6 S1 S2 S3 S4 S5 S6 S7")

// TestPromisesAreTested fails for a promise, stated in any doc.go, that no test function names.
func TestPromisesAreTested(t *testing.T) {
	stated, problems := checkPromises(t, os.DirFS("."))
	for _, p := range problems {
		t.Error(p)
	}
	for _, id := range promised {
		if !slices.Contains(stated, id) {
			t.Errorf("promise %s is stated in no doc.go", id)
		}
	}
}

// TestPromiseCheckFindsWhatIsMissing shows on a fixture that the check above can fail.
func TestPromiseCheckFindsWhatIsMissing(t *testing.T) {
	stated, problems := checkPromises(t, os.DirFS("testdata/promises"))
	equal(t, "stated", stated, []string{"E1", "E10", "E2", "S1", "S3", "S4", "S5"})
	equal(t, "problems", problems, []string{
		"a/doc.go: no test function is named TestE2…",
		"b/doc.go: no test function is named TestS1…",
		"b/doc.go: no test function is named TestS4…",
		"b/doc.go: no test function is named TestS5…",
	})
}

var promiseID = regexp.MustCompile(`^([A-Z][0-9]+)[^A-Za-z0-9]`)

// checkPromises reads all of root and returns the promises that doc.go files state, sorted, and those without a test.
func checkPromises(t *testing.T, root fs.FS) (stated, problems []string) {
	where := map[string]string{} // ID → doc.go
	var tests []string
	eachFile(t, root, func(name string, text []byte) {
		isDoc, isTest := path.Base(name) == "doc.go", strings.HasSuffix(name, "_test.go")
		if !isDoc && !isTest {
			return
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, text, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		if isTest {
			tests = append(tests, testFunctions(file)...)
			return
		}
		for _, id := range listedIDs(file.Doc.Text()) {
			where[id] = name
		}
	})
	stated = slices.Sorted(maps.Keys(where))
	for _, id := range stated {
		if !slices.ContainsFunc(tests, func(test string) bool { return names(test, id) }) {
			problems = append(problems, fmt.Sprintf("%s: no test function is named Test%s…", where[id], id))
		}
	}
	return stated, problems
}

// names reports whether test begins with Test and id, and not with a longer number: TestE10 does not name E1.
func names(test, id string) bool {
	rest, ok := strings.CutPrefix(test, "Test"+id)
	return ok && (rest == "" || rest[0] < '0' || rest[0] > '9')
}

// listedIDs returns the IDs with which list items, paragraphs and lines of preformatted text of a doc comment begin.
func listedIDs(text string) (ids []string) {
	begins := func(line string) {
		if m := promiseID.FindStringSubmatch(line); m != nil {
			ids = append(ids, m[1])
		}
	}
	var begin func(comment.Block)
	begin = func(b comment.Block) {
		switch b := b.(type) {
		case *comment.Paragraph:
			if first, ok := b.Text[0].(comment.Plain); ok {
				begins(string(first))
			}
		case *comment.List:
			for _, item := range b.Items {
				begin(item.Content[0])
			}
		case *comment.Code:
			for line := range strings.Lines(b.Text) {
				begins(line)
			}
		}
	}
	for _, block := range new(comment.Parser).Parse(text).Content {
		begin(block)
	}
	return ids
}

// testFunctions returns the names of the functions that go test would run: no methods, one parameter.
func testFunctions(file *ast.File) (tests []string) {
	for _, decl := range file.Decls {
		f, ok := decl.(*ast.FuncDecl)
		if ok && f.Recv == nil && strings.HasPrefix(f.Name.Name, "Test") && f.Type.Params.NumFields() == 1 {
			tests = append(tests, f.Name.Name)
		}
	}
	return tests
}
