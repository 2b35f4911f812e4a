// Loaded before a server that would listen everywhere, on a port that it is
// told: it listens on 127.0.0.1, on a free port where the port is 0, and says
// which, before the server does.
import net from 'node:net';

const listen = net.Server.prototype.listen;
net.Server.prototype.listen = function (...args) {
  const port = typeof args[0] === 'object' && args[0] !== null ? args[0].port : args[0];
  if (!/^\d+$/.test(String(port ?? 0))) throw new Error('loopback.mjs: only ports, not ' + String(port));
  const callback = args.find((a) => typeof a === 'function');
  this.once('listening', () => process.stderr.write(`listens on http://127.0.0.1:${this.address().port}\n`));
  return listen.call(this, { port: Number(port ?? 0), host: '127.0.0.1' }, callback);
};
