package secretsource

import (
	"context"
	"errors"
	"fmt"

	"github.com/zalando/go-keyring"
)

// ErrKeyring is what errors wrap where the keyring itself can't be used.
var ErrKeyring = errors.New("the keyring can't be used")

// NoEntryError is the name of an entry that the keyring doesn't have.
type NoEntryError string

func (e NoEntryError) Error() string {
	return fmt.Sprintf("the keyring has no entry %q of %s", string(e), Service)
}

// readKeyring reads from the Secret Service (D-Bus), macOS's keychain or Windows'
// credential manager.
func readKeyring(ctx context.Context, name string) (value []byte, err error) {
	err = inKeyring(ctx, name, func() error {
		v, err := keyring.Get(Service, name)
		value = []byte(v)
		return err
	})
	if err != nil {
		return nil, err
	}
	return value, nil
}

// Store puts a value into the keyring, in the place of one of that name. A value that
// [Source.Read] would refuse is an error.
func Store(ctx context.Context, name string, value []byte) error {
	value, err := check(value, Source{Keyring: name})
	if err != nil {
		return err
	}
	return inKeyring(ctx, name, func() error { return keyring.Set(Service, name, string(value)) })
}

// Delete removes an entry of the keyring.
func Delete(ctx context.Context, name string) error {
	return inKeyring(ctx, name, func() error { return keyring.Delete(Service, name) })
}

// inKeyring doesn't wait for the keyring longer than ctx: it may ask a person, in a window,
// to be unlocked.
func inKeyring(ctx context.Context, name string, do func() error) error {
	done := make(chan error, 1)
	go func() { done <- do() }()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case err := <-done:
		switch {
		case errors.Is(err, keyring.ErrNotFound):
			return NoEntryError(name)
		case err != nil:
			return fmt.Errorf("%w: %w", ErrKeyring, err)
		}
		return nil
	}
}
