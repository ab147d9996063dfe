
-- ARGV replica, nonce, attempt or nothing for all, bytes of what is refused to keep, channel, event or nothing
-- Returns {ok}. Nonce or attempt are refused from now on also when they hold nothing: their acquire may still be on the way.

local err = check()
if err then
  return err
end
local token, replica, nonce, attempt = holder()
local ours = token and replica == ARGV[1] and nonce == ARGV[2] and (ARGV[3] == '' or attempt == ARGV[3])
if ours then
  redis.call('DEL', lease)
end
if ARGV[3] == '' then
  refuse('released', ARGV[2], ARGV[4])
else
  refuse('withdrawn', ARGV[3], ARGV[4])
end
if ours and ARGV[6] ~= '' then
  publish(ARGV[5], ARGV[6])
end
return {'ok'}
