// Package b is a fixture whose promises stand in other forms.
//
//  1. S1 is named by the test of S10 only.
//  2. S3 is named by a test in another package's file.
//
// S4 is a paragraph, and has no test.
//
//	S5  Preformatted, and has no test;
//	    see S6, which is not stated here.
package b
