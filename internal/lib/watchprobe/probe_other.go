//go:build !linux

// Package watchprobe is for Linux alone.
package watchprobe
