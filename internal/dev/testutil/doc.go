// Package testutil has what the tests of several packages share.
package testutil
