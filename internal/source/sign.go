package source

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/llmdo/workshop/internal/lib/clip"
)

// ErrNoKeygen means that there is no program that signs.
var ErrNoKeygen = errors.New("there is no ssh-keygen program in PATH")

// Sign signs the digest of an artifact by the user's ssh-keygen, which may ask an agent, or
// on the terminal for a passphrase. The file has the key, or the public one whose other
// half the agent has. It returns the fingerprint of the key, too.
func Sign(ctx context.Context, keyFile, digest string) (signature []byte, key string, err error) {
	program, err := exec.LookPath("ssh-keygen")
	if err != nil { // also one of the working directory: exec.ErrDot
		return nil, "", ErrNoKeygen
	}
	cmd := exec.CommandContext(ctx, program, "-Y", "sign", "-n", signNamespace, "-f", keyFile)
	var out, said bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr, cmd.WaitDelay = strings.NewReader(digest), &out, &said, time.Second
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			return nil, "", context.Cause(ctx)
		}
		if lines := strings.Split(strings.TrimSpace(said.String()), "\n"); lines[len(lines)-1] != "" {
			err = errors.New(clip.Bytes(strings.TrimSpace(lines[len(lines)-1]), 300))
		}
		return nil, "", fmt.Errorf("ssh-keygen: %w", err)
	}
	by, err := signedBy([]byte(digest), out.Bytes(), signNamespace)
	if err != nil {
		return nil, "", fmt.Errorf("what ssh-keygen made can't be used: %w", err)
	}
	return out.Bytes(), ssh.FingerprintSHA256(by), nil
}
