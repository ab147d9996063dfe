package memstore_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/go-singleton/singleton/store"
	"github.com/go-singleton/singleton/store/memstore"
	"github.com/go-singleton/singleton/store/storetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestContract(t *testing.T) {
	var last *memstore.Store
	storetest.Run(t, storetest.Harness{
		Open: func(t *testing.T) store.Store {
			last = memstore.New()
			return last
		},
		Wipe: func(t *testing.T) { last.Wipe() },
	})
}
