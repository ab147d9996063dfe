-- KEYS lease
-- ARGV replica, nonce
-- Returns {ok}. Unlike release it forgets the nonce: who asks for the lease with it goes on asking.

local err = foreign(KEYS[1], 'string')
if err then
  return err
end
local value = redis.call('GET', KEYS[1])
if value and string.match(value, '^%d+ (%S+ %S+)$') == ARGV[1] .. ' ' .. ARGV[2] then
  redis.call('DEL', KEYS[1])
end
return {'ok'}
