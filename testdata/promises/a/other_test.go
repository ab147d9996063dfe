package a_test

import "testing"

func TestS3InAnotherPackage(t *testing.T) {}

func TestS10(t *testing.T) {}
