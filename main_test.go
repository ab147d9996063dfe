//go:build unix

package singleton_test

import (
	"flag"
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if text := os.Getenv(orderVariable); text != "" {
		os.Exit(obey(text))
	}
	flag.Parse()
	if err := spread(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	goleak.VerifyTestMain(m)
}

// spread lets more tests run at once than there are processors, unless the user has said how many: most of them only
// wait for the end of a lease.
func spread() error {
	said := false
	flag.Visit(func(f *flag.Flag) { said = said || f.Name == "test.parallel" })
	if said {
		return nil
	}
	return flag.Set("test.parallel", "16")
}
