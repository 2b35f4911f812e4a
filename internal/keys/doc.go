// Package keys is API keys: who a caller is and what it may do.
//
// It promises:
//
//   - A key is shown once, when it is made. What is stored is its SHA-256; the
//     secret in it is 256 random bits, so that the hash can not be guessed back
//     and needs no salt. Hashes are compared in constant time.
//   - Keys are looked at for every request, and nothing about them is cached: a
//     key that was revoked or has expired opens nothing from then on. What it had
//     opened before (a stream of events, an answer that is awaited) ends at once
//     when it was revoked through this process, and within a second otherwise.
//   - Keys are required from the moment when the first one exists, also after
//     all of them were revoked.
//   - A key is of one tenant and has scopes, of which none includes another. The
//     keys of a tenant are managed by its own admin keys, and by those of the
//     operator's tenant, "default".
//   - No error, and nothing that is logged, has any of a key but its id.
package keys
