package app

import "path/filepath"

// CredentialsFile is the user's file of credentials; "" if there is nowhere to have one.
func (env *Env) CredentialsFile() string {
	if env.Settings.Credentials != "" {
		return env.Abs(env.Settings.Credentials)
	}
	if dir := env.ConfigDir(); dir != "" {
		return filepath.Join(dir, "credentials.yaml")
	}
	return ""
}
