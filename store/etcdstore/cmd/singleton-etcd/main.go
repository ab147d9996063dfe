// Command singleton-etcd is singleton with one more store: it has the same commands and flags, and knows the URLs etcd:// and
// etcds://, too. It is a program of its own so that singleton needs nothing of etcd. Call it singleton where that is what
// your scripts say.
package main

import (
	"context"
	"log/slog"
	"os"
	"time"

	"github.com/go-singleton/singleton/internal/cli"
	"github.com/go-singleton/singleton/store"
	"github.com/go-singleton/singleton/store/etcdstore"
)

func main() {
	os.Exit(cli.Main(context.Background(), os.Args[1:], os.Stdout, os.Stderr, cli.Openers{"etcd": open, "etcds": open}))
}

// open opens a store; a lease has its duration whatever the URL says.
func open(url string, _ time.Duration, log *slog.Logger) (store.Store, string, error) {
	c, name, err := etcdstore.ParseURL(url)
	if err != nil {
		return nil, "", err
	}
	c.Logger = log
	return etcdstore.New(c), name, nil
}
