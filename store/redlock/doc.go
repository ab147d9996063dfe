// Package redlock keeps leases and records on a majority of N independent Redis servers.
package redlock
