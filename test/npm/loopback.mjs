// Loaded before a program whose servers would listen everywhere: they listen on
// 127.0.0.1 and say on which port. This stands where Node itself binds, because
// some servers ask for their port right after listen, which a host that has to
// be looked up would make too early.
import net from 'node:net';

const bind = net.Server.prototype._listen2;
if (typeof bind !== 'function') throw new Error('loopback.mjs does not fit this version of Node: ' + process.version);
net.Server.prototype._listen2 = function (address, port, family, ...rest) {
  if (typeof port !== 'number' && !/^\d+$/.test(String(port))) throw new Error('loopback.mjs: only ports, not ' + String(port));
  this.once('listening', () => process.stderr.write(`listens on http://127.0.0.1:${this.address().port}\n`));
  return bind.call(this, '127.0.0.1', port, 4, ...rest);
};
