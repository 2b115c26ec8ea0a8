//go:build !unix

package cli

func ownerMay() {}
