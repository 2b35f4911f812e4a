// Package azureid gives the credentials with which a model at Azure is called where no
// key stands in the environment: access tokens of Entra ID (of a service principal, a
// workload, a managed identity, a developer) and API keys out of a Key Vault.
//
// A [Source] promises:
//
//   - nothing of Azure's SDK is made before the first credential is asked for;
//   - a credential is fetched once, whoever asks for it at the same time, and used until
//     some time ahead of its end; while a new one can not be had the old one is used as
//     long as it is good;
//   - a key that a server refused is looked up again, so that a rotated one is found at
//     once;
//   - errors say what could not be had and hold no secret. One of kind unavailable may
//     go away by itself.
//
// It was never tried against Azure itself: the tests play the token endpoint, the
// metadata service and the vault.
package azureid
