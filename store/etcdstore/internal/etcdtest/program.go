//go:build unix

package etcdtest

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
)

// program returns the path of the etcd server, which go builds where it has not, or has forgotten.
var program = sync.OnceValues(func() (string, error) {
	root, err := repository()
	if err != nil {
		return "", err
	}
	var said bytes.Buffer
	c := exec.Command("go", "tool", "-modfile="+filepath.Join(root, "tools", "etcd", "go.mod"), "-n", "go.etcd.io/etcd/server/v3")
	c.Dir, c.Stderr = root, &said
	path, err := c.Output()
	if err != nil {
		return "", fmt.Errorf("etcdtest: the etcd server cannot be built; run: make setup (%w)\n%s", err, &said)
	}
	return strings.TrimSpace(string(path)), nil
})

// repository returns the directory of the module that this one is nested in.
func repository() (string, error) {
	at, err := os.Getwd()
	for err == nil {
		if _, err := os.Stat(filepath.Join(at, "tools", "etcd", "go.mod")); err == nil {
			return at, nil
		}
		if filepath.Dir(at) == at {
			err = errors.New("tools/etcd/go.mod is not in a directory above")
		}
		at = filepath.Dir(at)
	}
	return "", fmt.Errorf("etcdtest: %w", err)
}
