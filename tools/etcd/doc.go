// Package etcd holds no code: its module pins the etcd server that the tests of store/etcdstore start, apart from the
// other tools, whose dependencies are of other versions.
package etcd
