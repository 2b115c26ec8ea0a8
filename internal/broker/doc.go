// Package broker is the host's side of credentials: one process for each workshop that is
// up, which reads the values of the user's credentials where the user keeps them, and leases
// them to the workshop's guard. [Core] decides, and has neither clock nor files; [Server]
// carries out; [Call] is how other commands speak with it.
//
// What may be leased is asked for anew again and again: it stands in the user's own file and
// in what the user agreed to, and ends with either (B33). A value is in the memory of this
// process and of the guard, and in no text that either makes (B32).
package broker
