package a

import "testing"

type fake struct{}

// TestE2 is not this function.
func TestE1AtMostOne(t *testing.T) {}

func TestE10(t *testing.T) {}

func (fake) TestE2(t *testing.T) {}

func TestE2Helper(t *testing.T, more int) {}
