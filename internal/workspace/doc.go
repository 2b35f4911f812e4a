// Package workspace is the built-in tools that look at a project folder:
// file_read, glob and grep, together the group "workspace". They change nothing.
//
// It promises that
//
//   - nothing outside the root is read, whatever a path, a symbolic link or a
//     swap of either during the call says ([os.Root] below, identity checks above it);
//   - files that usually hold secrets (.env, .ssh, id_rsa, …) are neither read nor
//     searched nor listed, wherever they are;
//   - every result fits: lines, bytes, matches and files are capped and a cut
//     result says how to get the rest;
//   - the same tree gives the same result: everything is sorted;
//   - a call ends soon after its context does.
//
// Hard links can not be told from files and are read as such.
package workspace
