// Package etcdstore keeps leases and records in an etcd cluster.
package etcdstore
