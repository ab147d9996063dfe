-- KEYS bill
-- ARGV token, who pays
-- Takes a payment unless a higher token has paid before. Returns the highest token that has: the caller was refused if it
-- is not the caller's own. Tokens are below 2^53, so that the numbers of Lua hold them exactly.

local highest = redis.call('HGET', KEYS[1], 'token')
if highest and tonumber(highest) > tonumber(ARGV[1]) then
  return highest
end
redis.call('HSET', KEYS[1], 'token', ARGV[1], 'paid_by', ARGV[2])
return ARGV[1]
