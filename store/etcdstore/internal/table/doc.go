// Package table measures which promise survives what on etcd: the rows of etcd, as internal/table of the module above has
// those of the other stores.
//
//	go test ./internal/table -v -run TestTable -table.on all -table.times 5 -parallel 5 -timeout 1h
package table
