// Package image runs the real binary as the image of deploy/Dockerfile does: in a root folder that has the program, one
// file of certificates and nothing else (no libc, no shell, no /tmp, no /etc/passwd, no time zones), which can not be
// written to, as a user without a name. It needs Linux, and root or user namespaces.
package image
