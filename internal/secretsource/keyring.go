package secretsource

import (
	"errors"
	"fmt"

	"github.com/zalando/go-keyring"
)

// readKeyring reads from the Secret Service (D-Bus), macOS's keychain or Windows'
// credential manager.
func readKeyring(name string) ([]byte, error) {
	v, err := keyring.Get(Service, name)
	if errors.Is(err, keyring.ErrNotFound) {
		return nil, fmt.Errorf("the keyring has no entry %q of %s", name, Service)
	}
	if err != nil {
		return nil, fmt.Errorf("the keyring can't be read: %w", err)
	}
	return []byte(v), nil
}
